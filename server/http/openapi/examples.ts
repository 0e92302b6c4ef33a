import type { JsonSchema } from '../rest-input.ts'

/** An example value for a schema: its `example`, `default`, `const` or first `enum` value; objects and lists are composed. */
export function exampleOf(schema: JsonSchema, definitions: Record<string, JsonSchema>): unknown {
  if (schema.example !== undefined) return schema.example
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.$ref) return exampleOf(definitions[nameOf(schema.$ref)] ?? {}, definitions)
  if (schema.anyOf) return exampleOf(schema.anyOf.find(({ type }) => type !== 'null') ?? {}, definitions)
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, field]) => [name, exampleOf(field, definitions)]),
      )
    case 'array':
      return [exampleOf(schema.items ?? {}, definitions)]
    case 'integer':
    case 'number':
      return typeof schema.minimum === 'number' ? schema.minimum : 1
    case 'boolean':
      return true
    case 'string':
      return 'text'
    default:
      return null
  }
}

/** The last part of a `$ref`. */
export function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}
