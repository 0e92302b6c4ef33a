import type { JsonSchema } from './input-shape.ts'

/** What a path or a query can carry: text, or several when a name is repeated. */
export type TextValue = string | string[]

/**
 * Texts of a path or query as what their field's schema wants: numbers, `true` and `false`, lists by repetition.
 * A text that does not read as such stays as it is, so that the schema refuses it in its own words.
 */
export function coerceText(value: TextValue, schema: JsonSchema): unknown {
  const { type, items } = wantedType(schema)
  if (type === 'array') {
    const values = Array.isArray(value) ? value : [value]
    return values.map((item) => coerceText(item, items ?? {}))
  }
  if (Array.isArray(value)) return value
  if (type === 'integer') return WHOLE.test(value) ? Number(value) : value
  if (type === 'number') return DECIMAL.test(value) ? Number(value) : value
  if (type === 'boolean') return value === 'true' ? true : value === 'false' ? false : value
  return value
}

/** No hexadecimal, exponents, spaces or signs in front: a plain number is written in one way. */
const WHOLE = /^-?\d{1,15}$/
const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/

/** Looks through `nullable` and unions with one kind of value. */
function wantedType(schema: JsonSchema): { type: string | undefined; items?: JsonSchema } {
  const options = schema.anyOf?.filter((option) => option.type !== 'null')
  if (options?.length === 1 && options[0]) return wantedType(options[0])
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null')
  return { type: types.length === 1 ? types[0] : undefined, items: schema.items }
}
