import { z } from 'zod'
import type { ProcedureRecord, RestRoute } from '../platform/api/procedure.ts'

/** The part of JSON Schema that `z.toJSONSchema` writes and this code reads. */
export interface JsonSchema {
  $ref?: string
  $defs?: Record<string, JsonSchema>
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: JsonSchema[]
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  default?: unknown
  example?: unknown
  description?: string
  [keyword: string]: unknown
}

export type FieldSource = 'path' | 'query' | 'body'

/** The fields of a procedure's input, and which part of a REST request carries each. */
export interface InputShape {
  /** The procedure's own schema. */
  input: z.ZodObject
  schema: JsonSchema
  fields: Map<string, { source: FieldSource; schema: JsonSchema; required: boolean }>
}

const shapes = new WeakMap<RestRoute, InputShape>()

/**
 * The REST form of a procedure's input: path parameters by name; other fields are in the query of GET and DELETE, in the
 * body of POST and PATCH (`takesBody`). Throws if the input is not one strict object or lacks a path parameter.
 */
export function inputShapeOf(procedure: ProcedureRecord, route: RestRoute): InputShape {
  const shape = shapes.get(route) ?? makeShape(procedure, route)
  shapes.set(route, shape)
  return shape
}

function makeShape(procedure: ProcedureRecord, route: RestRoute): InputShape {
  const [given, more] = procedure.inputs
  // REST always builds an object, so a default for a missing input does not matter.
  const input = given instanceof z.ZodPrefault ? given.unwrap() : given
  if (!(input instanceof z.ZodObject) || more !== undefined) {
    throw new Error(`procedure ${procedure.name}: a REST route needs one z.strictObject as its input`)
  }
  const schema = z.toJSONSchema(input, { io: 'input' }) as JsonSchema
  if (schema.additionalProperties !== false) {
    throw new Error(`procedure ${procedure.name}: its input must be strict`)
  }
  const inPath = pathNames(route.path)
  const rest = takesBody(route) ? 'body' : 'query'
  const fields: InputShape['fields'] = new Map()
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    fields.set(name, {
      source: inPath.includes(name) ? 'path' : rest,
      schema: resolve(field, schema),
      required: schema.required?.includes(name) ?? false,
    })
  }
  const missing = inPath.find((name) => !fields.has(name))
  if (missing) throw new Error(`procedure ${procedure.name}: its input has no field for :${missing}`)
  return { input, schema, fields }
}

/** Whether the fields that are not in the path are in the body; else they are in the query. */
export function takesBody(route: RestRoute): boolean {
  return route.method === 'POST' || route.method === 'PATCH' || route.takesBody === true
}

function pathNames(path: string): string[] {
  return [...path.matchAll(/:([A-Za-z0-9_]+)/g)].map((match) => match[1] ?? '')
}

function resolve(field: JsonSchema, root: JsonSchema): JsonSchema {
  const name = field.$ref?.replace('#/$defs/', '')
  return name === undefined ? field : (root.$defs?.[name] ?? field)
}

/** A path or query value: one text, or several if the name is repeated. */
export type TextValue = string | string[]

/** Plain decimal notation only: no hexadecimal, exponents, spaces or plus signs. */
const WHOLE = /^-?\d{1,15}$/
const DECIMAL = /^-?\d{1,15}(\.\d{1,15})?$/

/**
 * Converts a path or query value to its schema's type: number, boolean, or list (a repeated name). A text that does not fit
 * stays a text, so that the schema reports it.
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

/** Whether a repeated name is a list. */
export function takesSeveral(schema: JsonSchema): boolean {
  return wantedType(schema).type === 'array'
}

/** The one type besides null, looked up through unions. */
function wantedType(schema: JsonSchema): { type: string | undefined; items?: JsonSchema } {
  const options = schema.anyOf?.filter((option) => option.type !== 'null')
  if (options?.length === 1 && options[0]) return wantedType(options[0])
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null')
  return { type: types.length === 1 ? types[0] : undefined, items: schema.items }
}
