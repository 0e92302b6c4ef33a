import { withoutInvisible } from '../../shared/pasted-text.ts'
import { type Fields, isFields, readText } from './fields.ts'

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
/** Attributes of the order and of all its lines that are read. */
const MAX_ATTRIBUTES = 2000
const MAX_NAME = 80
/** Texts that name the parameter and are searched for an address. */
const MAX_TEXTS = 4

/**
 * The references of an order, without repeats. What the store's script put into the cart (`note_attributes`) comes first, then what it put
 * into the form of a buy-now button (the property `_<parameter>` of a line), then the first page of the session (`landing_site`). Forms for
 * cash on delivery write the address of their page into attributes or the order's note, which count as attributes. A place that is
 * missing, empty or of another shape is passed over.
 */
export function readReferences(order: Fields, parameter: string): PlacedReference[] {
  const name = plainName(parameter)
  const attributes = attributesIn(order.note_attributes)
  const lines: unknown[] = Array.isArray(order.line_items) ? order.line_items : []
  const properties = lines
    .flatMap((line) => attributesIn((line as Fields | null)?.properties))
    .filter(([property]) => property.trimStart().startsWith('_'))
  const places: [TrackingSource, string[]][] = [
    ['note_attributes', valuesOf(attributes, name)],
    ['note_attributes', inTexts([...attributes.map(([, value]) => value), order.note], parameter)],
    ['line_item', valuesOf(properties, name)],
    ['landing_site', fromLandingSite(order.landing_site, name)],
  ]
  const all = places.flatMap(([source, found]) => found.map((reference) => ({ reference, source })))
  const isFirst = (one: PlacedReference, at: number) =>
    all.findIndex(({ reference }) => reference === one.reference) === at
  return all
    .slice(0, 4 * MAX_REFERENCES)
    .filter(isFirst)
    .slice(0, MAX_REFERENCES)
}

type Attribute = [name: string, value: unknown]

/** Of a list of `{ name, value }`, or `{ key, value }` as some apps send it, or of an object. */
function attributesIn(value: unknown): Attribute[] {
  if (isFields(value)) return Object.entries(value).slice(0, MAX_ATTRIBUTES)
  if (!Array.isArray(value)) return []
  return value.slice(0, MAX_ATTRIBUTES).flatMap((attribute): Attribute[] => {
    const name = attribute?.name ?? attribute?.key
    return typeof name === 'string' ? [[name, attribute.value]] : []
  })
}

function valuesOf(attributes: readonly Attribute[], name: string): string[] {
  return attributes
    .slice(0, MAX_ATTRIBUTES)
    .flatMap(([written, value]) => (plainName(written) === name ? readReference(value) : []))
}

/** A name for comparisons: letters and digits only, small, since people and apps write it as they like. */
function plainName(name: string): string {
  return name
    .slice(0, MAX_NAME)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '')
}

const CLICK_ID =
  /(?<![0-9a-z])[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(?![0-9a-z]|\s+\S)/i

/** The click id in a value, without what is glued to it; a value without one comes back unchanged. */
function readReference(value: unknown): string[] {
  const text = readText(value, MAX_REFERENCE)
  return text === null ? [] : [CLICK_ID.exec(withoutInvisible(text))?.[0] ?? text]
}

/** The query is cut out by hand: a path is no URL, and `URLSearchParams` lets broken percent-encoding pass where decoding throws. */
function fromLandingSite(value: unknown, name: string): string[] {
  if (typeof value !== 'string') return []
  const [address = ''] = value.slice(0, MAX_ADDRESS).split('#', 1)
  const query = withPlainMarks(address)
  const start = query.search(/[?&]/)
  return start === -1 ? [] : fromQuery(query.slice(start), name)
}

/** Of texts that may hold an address, or only its query. */
function inTexts(values: readonly unknown[], parameter: string): string[] {
  const texts = values.flatMap((value) => (typeof value === 'string' ? value.slice(0, MAX_ADDRESS) : []))
  const found = texts.filter((text) => text.toLowerCase().includes(parameter.toLowerCase()))
  return found
    .slice(0, MAX_TEXTS)
    .flatMap((text) => fromQuery(withPlainMarks(text).replaceAll(/[#\s]+/g, '&'), plainName(parameter)))
}

/** Apps encode an address once more, or as HTML: the marks between its parameters become plain again. */
function withPlainMarks(address: string): string {
  return address
    .replaceAll(/%25(?=3d|3f|26)/gi, '%')
    .replaceAll(/%3d/gi, '=')
    .replaceAll(/%3f/gi, '?')
    .replaceAll(/%26/gi, '&')
    .replaceAll('&amp;', '&')
}

/** Apps append their parameters with a second question mark. */
function fromQuery(query: string, name: string): string[] {
  return [...new URLSearchParams(query.replaceAll('?', '&'))].flatMap(([written, value]) =>
    plainName(written) === name ? readReference(value) : [],
  )
}
