import { join } from 'node:path'
import { type Config, dataFolder } from '../../server/platform/config.ts'
import { readAppKeys } from '../../server/platform/crypto/app-keys.ts'
import { readKeyMark } from '../../server/platform/crypto/key-mark.ts'
import { createVault, type Vault } from '../../server/platform/crypto/vault.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { countAdminsWithoutSecondFactor } from '../../server/users/second-factor.service.ts'
import { about, type Finding, type Found, privacyOf, wordsOf } from './finding.ts'

const { ok, info, warn, fail } = about('secrets')

export async function examineSecrets(
  config: Config,
  environment: NodeJS.ProcessEnv,
  database: OpenDatabase | null,
): Promise<Found> {
  const folder = dataFolder(config)
  return [
    await examineKey(config, database),
    environment.APP_KEY ? null : privacyOf('secrets', join(folder, 'app.key')),
    privacyOf('secrets', join(folder, 'sandbox.json')),
    examineWebhookSecrets(config),
    database && config.NODE_ENV === 'production' ? await examineAdmins(database) : null,
  ]
}

async function examineAdmins({ reader }: OpenDatabase): Promise<Found> {
  const count = await countAdminsWithoutSecondFactor(reader)
  if (count === 0) return null
  return warn(
    `${count} admin${count === 1 ? ' has' : 's have'} no second factor`,
    'They set it up at their next log-in; or run "affiliate users enroll-second-factor USER".',
  )
}

async function examineKey(config: Config, database: OpenDatabase | null): Promise<Finding> {
  let vault: Vault
  try {
    vault = createVault(readAppKeys(config, { create: false }))
  } catch (error) {
    return fail(wordsOf(error), 'Restore app.key or APP_KEY from your backup; a new key opens nothing old.')
  }
  if (!database) return info('APP_KEY is set; without a database it cannot be checked')
  switch (await readKeyMark(database.reader, vault)) {
    case null:
      return info('APP_KEY is there; the first start of the service seals the database with it')
    case 'foreign':
      return fail(
        'APP_KEY is another one than this database was sealed with',
        'Set the key that belongs to it, or add it to APP_KEYS_FORMER: with these keys no webhook secret and no bank account opens.',
      )
    case 'former':
      return warn(
        'this database is sealed with a key of APP_KEYS_FORMER',
        'Run "affiliate keys rotate"; the service may run meanwhile.',
      )
    default:
      return ok('APP_KEY opens what this database has sealed')
  }
}

function examineWebhookSecrets({ PROCESSOR, PROCESSOR_WEBHOOK_SECRETS }: Config): Finding {
  if (PROCESSOR === 'sandbox') return info('the sandbox signs with a secret of its own')
  const count = PROCESSOR_WEBHOOK_SECRETS?.length ?? 0
  return ok(`${count} webhook secret${count === 1 ? '' : 's'} of the processor`)
}
