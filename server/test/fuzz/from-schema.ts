import type { JsonSchema } from '../../http/rest-input.ts'
import { idFieldsOf } from '../authorization/foreign-ids.ts'
import { either, fc } from '../testkit/property.ts'
import { ID_WORDS, type IdWord, type Targets } from './fuzzed-service.ts'

/** Texts that fit what the pattern of a schema cannot tell, by the field's name. */
function knownTexts({ slugs, emails, password }: Targets): Record<string, fc.Arbitrary<string>> {
  return {
    slug: fc.constantFrom(...slugs),
    email: fc.oneof(
      fc.constantFrom(...emails),
      fc.uuid().map((id) => `${id}@example.pk`),
    ),
    current_password: fc.constant(password),
    new_password: fc.constant(password),
    password: fc.constant(password),
    shop_domain: fc.uuid().map((id) => `s${id}.myshopify.com`),
    webhook_secret: fc.uuid(),
    product_url: fc.webUrl({ validSchemes: ['https'], withQueryParameters: true }),
    promotion_url: fc.webUrl({ validSchemes: ['https'] }),
    iban: fc.constantFrom('PK36SCBL0000001123456702', 'PK24 SCBL 0000 0011 2345 6702', 'PK36SCBL'),
  }
}

/** Whose ids a procedure is likely to want: of the word before `:id` in its path. */
export function idsFor(path: string, targets: Targets): readonly string[] {
  const word = /([\w-]+)\/:id/.exec(path)?.[1]
  return ID_WORDS.includes(word as IdWord) ? targets.idsOf[word as IdWord] : targets.ids
}

/** Mostly what the schema takes; where a pattern says more than can be read from it, sometimes not. */
export function fromSchema(
  schema: JsonSchema,
  targets: Targets,
  likelyIds: readonly string[] = targets.ids,
  name = '',
  root = schema,
): fc.Arbitrary<unknown> {
  const inner = (part: JsonSchema, partName = name) => fromSchema(part, targets, likelyIds, partName, root)
  if (schema.$ref) return inner(root.$defs?.[schema.$ref.replace('#/$defs/', '')] ?? {})
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((option) => inner(option)))
  if (schema.type === 'null') return fc.constant(null)
  if (schema.type === 'boolean') return fc.boolean()
  if (schema.type === 'integer' || schema.type === 'number') return numberOf(schema)
  if (schema.type === 'array') {
    return fc.array(inner(schema.items ?? {}), { minLength: numberIn(schema.minItems, 0), maxLength: 5 })
  }
  if (schema.type === 'object') return objectOf(schema, inner)
  return textOf(schema, targets, likelyIds, name)
}

function objectOf(schema: JsonSchema, inner: (part: JsonSchema, name: string) => fc.Arbitrary<unknown>) {
  const fields = Object.entries(schema.properties ?? {})
  return fc.record(Object.fromEntries(fields.map(([name, field]) => [name, inner(field, name)])), {
    requiredKeys: schema.required ?? [],
  })
}

function numberOf(schema: JsonSchema): fc.Arbitrary<number> {
  const least = Math.ceil(numberIn(schema.minimum, -1000))
  const most = Math.floor(Math.min(numberIn(schema.maximum, 1000), 1_000_000))
  const whole = fc.integer({ min: least, max: Math.max(least, most) })
  return schema.type === 'integer'
    ? whole
    : fc.oneof(
        whole,
        whole.map((value) => Math.min(value + 0.25, most)),
      )
}

function textOf(
  schema: JsonSchema,
  targets: Targets,
  likelyIds: readonly string[],
  name: string,
): fc.Arbitrary<unknown> {
  if (idFieldsOf(schema).length > 0) {
    return either([20, fc.constantFrom(...likelyIds)], [3, fc.constantFrom(...targets.ids)], [1, fc.uuid()])
  }
  const known = knownTexts(targets)[name]
  const examples = [schema.example ?? schema.examples].flat().filter((value) => typeof value === 'string')
  if (schema.format === 'date-time') {
    return fc
      .date({ noInvalidDate: true, min: new Date('2020-01-01'), max: new Date('2030-01-01') })
      .map((date) => date.toISOString())
  }
  if (schema.pattern?.toString().startsWith('^\\d{1,13}'))
    return fc.constantFrom('1.00', '10.5', '25', '0.01', '9999999999999.99')
  const least = numberIn(schema.minLength, 0)
  const words = fc
    .string({ unit: 'grapheme-ascii', minLength: least, maxLength: Math.max(least, 40) })
    .map((text) => text.padEnd(least, 'x'))
  if (name === 'cursor')
    return fc.constantFrom(...targets.ids).map((id) => Buffer.from(JSON.stringify(id)).toString('base64url'))
  return either([4, known ?? (examples.length > 0 ? fc.constantFrom(...examples) : words)], [1, words])
}

function numberIn(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise
}
