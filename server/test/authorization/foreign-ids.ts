import { z } from 'zod'
import { idParam } from '../../../shared/schemas/common.ts'
import type { JsonSchema } from '../../http/rest-input.ts'

const ID_PATTERN = (z.toJSONSchema(idParam) as JsonSchema).pattern

/** The paths of all fields of an input that take an id, in dots; those of lists end in `[]`. */
export function idFieldsOf(schema: JsonSchema, root = schema, path = ''): string[] {
  if (schema.$ref) return idFieldsOf(root.$defs?.[schema.$ref.replace('#/$defs/', '')] ?? {}, root, path)
  if (schema.pattern === ID_PATTERN) return [path]
  const inside = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    idFieldsOf(field, root, path === '' ? name : `${path}.${name}`),
  )
  const items = schema.items ? idFieldsOf(schema.items, root, `${path}[]`) : []
  return [...inside, ...items, ...(schema.anyOf ?? []).flatMap((option) => idFieldsOf(option, root, path))]
}
