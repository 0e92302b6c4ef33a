import type { JsonSchema } from './input-shape.ts'

/**
 * An example value for a schema: what the schema itself gives (`example`, `default`, `const`, the first of `enum`), put
 * together over objects and lists. The linter checks the result against the schema.
 */
export function exampleOf(schema: JsonSchema, definitions: Record<string, JsonSchema>): unknown {
  if (schema.example !== undefined) return schema.example
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.$ref) return exampleOf(definitions[nameOf(schema.$ref)] ?? {}, definitions)
  if (schema.anyOf) return exampleOf(firstReal(schema.anyOf), definitions)
  return exampleOfType(schema, definitions)
}

/** The last part of a `$ref`. */
export function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}

function firstReal(options: JsonSchema[]): JsonSchema {
  return options.find((option) => option.type !== 'null') ?? {}
}

function exampleOfType(schema: JsonSchema, definitions: Record<string, JsonSchema>): unknown {
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
