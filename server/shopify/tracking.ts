import { type Fields, readText } from './fields.ts'

export type TrackingSource = 'note_attributes' | 'line_item' | 'landing_site'

/**
 * Text where a tracking reference belongs, as the store sent it, up to 200 characters: a visitor can write anything into an address, so this
 * is no click id yet.
 */
export interface PlacedReference {
  reference: string
  source: TrackingSource
}

/** More in one order are not read. */
const MAX_REFERENCES = 25
const MAX_REFERENCE = 200
/** Browsers and servers take addresses of up to 8 KB; splitting the query of a longer one would take long. */
const MAX_ADDRESS = 8192

/**
 * The references of an order, without repeats. What the store's script put into the cart (`note_attributes`) comes first, then what it put
 * into the form of a buy-now button (the property `_<parameter>` of a line), then the first page of the session (`landing_site`). A
 * place that is missing, empty or of another shape is passed over.
 */
export function readReferences(order: Fields, parameter: string): PlacedReference[] {
  const lines: unknown[] = Array.isArray(order.line_items) ? order.line_items : []
  const places: [TrackingSource, string[]][] = [
    ['note_attributes', fromAttributes(order.note_attributes, parameter)],
    [
      'line_item',
      lines.flatMap((line) => fromAttributes((line as Fields | null)?.properties, `_${parameter}`)),
    ],
    ['landing_site', fromLandingSite(order.landing_site, parameter)],
  ]
  const all = places.flatMap(([source, found]) => found.map((reference) => ({ reference, source })))
  const isFirst = (one: PlacedReference, at: number) =>
    all.findIndex(({ reference }) => reference === one.reference) === at
  return all
    .slice(0, 4 * MAX_REFERENCES)
    .filter(isFirst)
    .slice(0, MAX_REFERENCES)
}

/** Of a list of `{ name, value }`. */
function fromAttributes(value: unknown, name: string): string[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((attribute) =>
    attribute?.name === name ? (readText(attribute.value, MAX_REFERENCE) ?? []) : [],
  )
}

/** The query is cut out by hand: a path is no URL, and `URLSearchParams` lets broken percent-encoding pass where decoding throws. */
function fromLandingSite(value: unknown, parameter: string): string[] {
  if (typeof value !== 'string') return []
  const [address = ''] = value.slice(0, MAX_ADDRESS).split('#', 1)
  const question = address.indexOf('?')
  if (question === -1) return []
  const found = new URLSearchParams(address.slice(question + 1)).getAll(parameter)
  return found.flatMap((candidate) => readText(candidate, MAX_REFERENCE) ?? [])
}
