import type { JsonSchema } from '../rest-input.ts'
import examples from './examples.json' with { type: 'json' }

/** What a marketplace was sent and answered in one run; `npm run openapi:examples` writes it. */
interface Examples {
  /** By the resource before `:id` in a path. */
  ids: Record<string, string>
  /** Of paths and queries, by name. */
  parameters: Record<string, unknown>
  /** By operation. */
  bodies: Record<string, unknown>
  /** By operation, as its media type has them: one, or one for each kind of caller. */
  responses: Record<string, object>
  /** By the name of the schema. */
  components: Record<string, unknown>
  /** Of the routes that are no procedures. */
  edge: typeof examples.edge
}

export const EXAMPLES: Examples = examples

type Components = Record<string, JsonSchema>

/**
 * An example value for a schema, and for the field that has it: a component's example, that of the field's name, that of its
 * type, its default, or its first choice. Objects and lists are composed. Throws for a text or number without an example.
 */
export function exampleOf(schema: JsonSchema, components: Components, field = ''): unknown {
  const component = schema.$ref && nameOf(schema.$ref)
  if (component && component in EXAMPLES.components) return EXAMPLES.components[component]
  if (component) return exampleOf(components[component] ?? {}, components, field)
  if (field in EXAMPLES.parameters) return EXAMPLES.parameters[field]
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
        `the field ${field || JSON.stringify(schema)} has no example; give its schema one, or use it in scripts/openapi-examples.ts`,
      )
  }
}

/** The last part of a `$ref`. */
export function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}
