import { type Fields, readText } from './fields.ts'

/** Receipts of earlier versions have `note_attributes` and `landing_site` only. */
export type TrackingSource = 'note_attributes' | 'line_item' | 'landing_site'

export interface Tracking {
  /** As the store sent it, up to 200 characters: a visitor can write anything into an address, so this is no click id yet. */
  tracking_reference: string | null
  tracking_source: TrackingSource | null
}

const MAX_REFERENCE = 200
/** Browsers and servers take addresses of up to 8 KB; splitting the query of a longer one would take long. */
const MAX_ADDRESS = 8192

/**
 * The tracking reference of an order. What the store's script put into the cart (`note_attributes`) comes first, then what it put
 * into the form of a buy-now button (the property `_<parameter>` of a line), then the first page of the session (`landing_site`). A
 * place that is missing, empty or of another shape is passed over.
 */
export function readTracking(order: Fields, parameter: string): Tracking {
  const noted = fromAttributes(order.note_attributes, parameter)
  if (noted !== null) return { tracking_reference: noted, tracking_source: 'note_attributes' }
  const bought = fromLines(order.line_items, `_${parameter}`)
  if (bought !== null) return { tracking_reference: bought, tracking_source: 'line_item' }
  const landed = fromLandingSite(order.landing_site, parameter)
  if (landed !== null) return { tracking_reference: landed, tracking_source: 'landing_site' }
  return { tracking_reference: null, tracking_source: null }
}

function fromLines(value: unknown, property: string): string | null {
  if (!Array.isArray(value)) return null
  for (const line of value) {
    const reference = fromAttributes(line?.properties, property)
    if (reference !== null) return reference
  }
  return null
}

/** Of a list of `{ name, value }`. */
function fromAttributes(value: unknown, name: string): string | null {
  if (!Array.isArray(value)) return null
  for (const attribute of value) {
    if (attribute?.name !== name) continue
    const reference = readText(attribute.value, MAX_REFERENCE)
    if (reference !== null) return reference
  }
  return null
}

/** The query is cut out by hand: a path is no URL, and `URLSearchParams` lets broken percent-encoding pass where decoding throws. */
function fromLandingSite(value: unknown, parameter: string): string | null {
  if (typeof value !== 'string') return null
  const [address = ''] = value.slice(0, MAX_ADDRESS).split('#', 1)
  const question = address.indexOf('?')
  if (question === -1) return null
  for (const candidate of new URLSearchParams(address.slice(question + 1)).getAll(parameter)) {
    const reference = readText(candidate, MAX_REFERENCE)
    if (reference !== null) return reference
  }
  return null
}
