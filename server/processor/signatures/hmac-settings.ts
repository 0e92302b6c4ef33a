import { z } from 'zod'

const PLACEHOLDER = /\{[^{}]*\}/g

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, 'not a header name')
  .transform((name) => name.toLowerCase())

/**
 * The `hmac` scheme's settings. `template` says what is signed, from `{body}`, `{timestamp}` and `{id}`. A time or
 * an id from a header must be part of it: unsigned, either could be replaced on a captured request.
 */
export const hmacSettingsSchema = z
  .strictObject({
    template: z.string().max(200).default('{body}'),
    algorithm: z.enum(['sha256', 'sha384', 'sha512']).default('sha256'),
    encoding: z.enum(['hex', 'base64']).default('hex'),
    secret_encoding: z.enum(['text', 'base64', 'hex']).default('text'),
    signature_header: headerName,
    /** `value`: the header is the signature. `pairs`: `t=...,v1=...`, as Stripe sends it. */
    header_form: z.enum(['value', 'pairs']).default('value'),
    signature_key: z.string().min(1).max(20).default('v1'),
    timestamp_key: z.string().min(1).max(20).default('t'),
    /** What stands before each signature, such as `sha256=`. */
    prefix: z.string().max(20).default(''),
    /** Parts several signatures of one header (`value` form only); null: exactly one. */
    separator: z.enum([' ', ',']).nullable().default(null),
    /** null in the `pairs` form: the time is a pair of the signature header. */
    timestamp_header: headerName.nullable().default(null),
    timestamp_format: z.enum(['unix_seconds', 'unix_milliseconds', 'rfc3339']).default('unix_seconds'),
    tolerance_seconds: z.int().min(1).max(3600).default(300),
    id_header: headerName.nullable().default(null),
    /** Top-level field of the body that holds the event id; used when there is no `id_header`. */
    id_field: z.string().min(1).max(100).nullable().default(null),
  })
  .superRefine((settings, context) => {
    for (const problem of templateProblems(settings)) {
      context.addIssue({ code: 'custom', path: ['template'], message: problem })
    }
  })

export type HmacSettings = z.infer<typeof hmacSettingsSchema>

function templateProblems(settings: {
  template: string
  header_form: 'value' | 'pairs'
  timestamp_header: string | null
  id_header: string | null
}): string[] {
  const placeholders: readonly string[] = settings.template.match(PLACEHOLDER) ?? []
  const known = placeholders.every((name) => ['{body}', '{timestamp}', '{id}'].includes(name))
  const signs = (name: string) => placeholders.includes(name)
  const timed = settings.timestamp_header !== null || settings.header_form === 'pairs'
  return [
    !known && 'only {body}, {timestamp} and {id} are known',
    new Set(placeholders).size !== placeholders.length && 'each placeholder may stand only once',
    !signs('{body}') && 'must hold {body}',
    signs('{timestamp}') && !timed && '{timestamp} needs timestamp_header or the pairs form',
    settings.timestamp_header !== null && !signs('{timestamp}') && 'timestamp_header needs {timestamp} here',
    signs('{id}') && settings.id_header === null && '{id} needs id_header',
    settings.id_header !== null && !signs('{id}') && 'id_header needs {id} here',
  ].filter((problem) => problem !== false)
}
