import type { z } from 'zod'
import { checkSealStorage } from './ledger/seals/stored-seals.service.ts'
import { type Config, examineConfig, refuseFaults, SettingError } from './platform/config.ts'
import { type ProcessorEventRules, processorEventsSchema } from './processor/events.settings.ts'
import { safepayEventRules } from './processor/safepay/safepay-events.ts'
import { createSignatureScheme } from './processor/signatures/choose-scheme.ts'
import { hmacSettingsSchema, type SignatureScheme } from './processor/signatures/hmac.ts'

/** Reads all settings of an environment, also those that only a concept understands. Throws `SettingError` that names every invalid one. */
export function readSettings(environment: Record<string, string | undefined>): Config {
  const { config, faults } = examineConfig(environment)
  const invalid = new Set(faults.map(({ name }) => name))
  const more = CHECKS.flatMap(({ check, of, by }) =>
    [of, ...by].some((name) => invalid.has(name)) ? [] : faultsOf(() => check(config)),
  )
  refuseFaults([...faults, ...more])
  return config
}

/** Checks of one setting, which make sense only where these others are valid. */
const CHECKS: { check: (config: Config) => unknown; of: keyof Config; by: (keyof Config)[] }[] = [
  { check: checkSealStorage, of: 'SEAL_STORAGE', by: ['DATA_DIR', 'DATABASE_URL'] },
  { check: readEventRules, of: 'PROCESSOR_EVENTS', by: ['PROCESSOR'] },
  {
    check: readSignatureScheme,
    of: 'PROCESSOR_WEBHOOK_SECRETS',
    by: ['PROCESSOR', 'PROCESSOR_SIGNATURE', 'PROCESSOR_SIGNATURE_HMAC'],
  },
]

function faultsOf(check: () => unknown) {
  try {
    check()
    return []
  } catch (error) {
    if (error instanceof SettingError) return error.faults
    throw error
  }
}

/** What the processor's event types mean. Throws `SettingError`. */
export function readEventRules(config: Config): ProcessorEventRules {
  if (config.PROCESSOR === 'safepay-raast' && config.PROCESSOR_EVENTS === undefined) {
    return safepayEventRules(config.SAFEPAY_PAYOUT_EVENT_UNIT)
  }
  return readJson('PROCESSOR_EVENTS', config, processorEventsSchema)
}

/** How the processor signs, with secrets that fit. Throws `SettingError`. */
export function readSignatureScheme(config: Config): SignatureScheme {
  const scheme = createSignatureScheme(
    config.PROCESSOR_SIGNATURE === 'hmac'
      ? { scheme: 'hmac', hmac: readJson('PROCESSOR_SIGNATURE_HMAC', config, hmacSettingsSchema) }
      : { scheme: config.PROCESSOR_SIGNATURE },
  )
  for (const secret of config.PROCESSOR_WEBHOOK_SECRETS ?? []) {
    const problem = scheme.secretProblem(secret)
    if (problem) throw new SettingError('PROCESSOR_WEBHOOK_SECRETS', problem)
  }
  return scheme
}

/** The setting's JSON. Throws `SettingError`: `rules.0.types: …`, or the problem alone where the whole is wrong. */
function readJson<Schema extends z.ZodType>(
  name: 'PROCESSOR_EVENTS' | 'PROCESSOR_SIGNATURE_HMAC',
  config: Config,
  schema: Schema,
): z.output<Schema> {
  let json: unknown
  try {
    json = JSON.parse(config[name] ?? '{}')
  } catch {
    throw new SettingError(name, 'must be JSON')
  }
  const { data, error } = schema.safeParse(json)
  if (!error) return data
  const [issue] = error.issues
  throw new SettingError(
    name,
    [...(issue?.path.length ? [issue.path.join('.')] : []), issue?.message].join(': '),
  )
}
