import { z } from 'zod'
import type { ProcedureRecord, RestRoute } from '../platform/procedure.ts'

/** As much of JSON Schema as z.toJSONSchema writes and we read. */
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

/** The fields of a procedure's flat input, and where a REST request carries each. */
export interface InputShape {
  /** The procedure's own schema. */
  input: z.ZodObject
  schema: JsonSchema
  fields: Map<string, { source: FieldSource; schema: JsonSchema; required: boolean }>
}

export function pathNames(path: string): string[] {
  return [...path.matchAll(/:([A-Za-z0-9_]+)/g)].map((match) => match[1] ?? '')
}

/** Path parameters by name; the rest is the query of GET and DELETE, the body of POST and PATCH. */
export function inputShapeOf(procedure: ProcedureRecord, route: RestRoute): InputShape {
  const [given, more] = procedure.inputs
  // Over REST there is always an object, so it does not matter whether tRPC lets it be left out.
  const input = given instanceof z.ZodPrefault ? given.unwrap() : given
  if (!(input instanceof z.ZodObject) || more !== undefined) {
    throw new Error(`procedure ${procedure.name}: a REST route needs one z.strictObject as its input`)
  }
  const schema = z.toJSONSchema(input, { io: 'input' }) as JsonSchema
  if (schema.additionalProperties !== false) {
    throw new Error(`procedure ${procedure.name}: its input must be strict`)
  }
  const inPath = pathNames(route.path)
  const rest: FieldSource = route.method === 'GET' || route.method === 'DELETE' ? 'query' : 'body'
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

function resolve(field: JsonSchema, root: JsonSchema): JsonSchema {
  const name = field.$ref?.replace('#/$defs/', '')
  return name === undefined ? field : (root.$defs?.[name] ?? field)
}
