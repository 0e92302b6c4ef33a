import type { JsonSchema } from '../rest-input.ts'
import { COMPONENT_EXAMPLES, FIELD_EXAMPLES } from './example-data.ts'

type Components = Record<string, JsonSchema>

/**
 * An example value for a schema, and for the field that has it: a component's example, that of the field's name, that of its
 * type, its default, or its first choice. Objects and lists are composed. Throws for a text or number without an example.
 */
export function exampleOf(schema: JsonSchema, components: Components, field = ''): unknown {
  const component = schema.$ref && nameOf(schema.$ref)
  if (component && component in COMPONENT_EXAMPLES) return COMPONENT_EXAMPLES[component]
  if (component) return exampleOf(components[component] ?? {}, components, field)
  if (field in FIELD_EXAMPLES) return FIELD_EXAMPLES[field]
  if (schema.example !== undefined) return schema.example
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const option = schema.anyOf?.find(({ type }) => type !== 'null')
  if (option) return exampleOf(option, components, field)
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, one]) => [
          name,
          exampleOf(one, components, name),
        ]),
      )
    case 'array':
      return [exampleOf(schema.items ?? {}, components, field)]
    case 'boolean':
      return true
    default:
      throw new Error(
        `the field ${field || JSON.stringify(schema)} has no example; add it to example-data.ts`,
      )
  }
}

/** Values as a media type's `examples`. */
export function namedExamples(values: Record<string, unknown>): Record<string, { value: unknown }> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { value }]))
}

/** The last part of a `$ref`. */
export function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}
