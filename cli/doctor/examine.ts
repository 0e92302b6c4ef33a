import { type Config, SettingError } from '../../server/platform/config.ts'
import { checkHosts, type OpenDatabase, openDatabase } from '../../server/platform/database/open-database.ts'
import { readSettings } from '../../server/read-settings.ts'
import { examineDatabase, examineReplica } from './database.ts'
import { examineFailover } from './failover.ts'
import { about, databaseFailure, type Finding, type Found, findingsIn } from './finding.ts'
import { examineClock, examineDisk, examineRuntime, examineSettings } from './machine.ts'
import { examineMail } from './mail.ts'
import { examineProcessor, examineWebhooks } from './outside.ts'
import { examineSeals } from './seals.ts'
import { examineSecrets } from './secrets.ts'
import { examineWork } from './work.ts'

/**
 * Looks at everything that the service needs, and writes nothing; with `afterFailover` also for what a failover may have lost. What cannot
 * be looked at is a finding, no error.
 */
export async function examine(
  environment: NodeJS.ProcessEnv,
  progress: (what: string) => void,
  afterFailover: boolean,
): Promise<Finding[]> {
  const found: Found[] = [examineRuntime(), examineSettings(environment)]
  const config = readableConfig(environment)
  if (!config) return findingsIn(found)
  progress('the database')
  let opened: OpenDatabase | null = null
  let usable: OpenDatabase | null = null
  try {
    opened = await open(config)
    const reached = await examineDatabase(config, opened)
    if (reached.usable) usable = opened
    found.push(reached.found, usable && (await examineReplica(config)))
  } catch (error) {
    found.push(databaseFailure(error))
  }
  found.push(await examineDisk(config))
  progress('clock and secrets')
  found.push(await examineClock(usable), await examineSecrets(config, environment, usable))
  found.push(await examineMail(config, usable))
  progress('the processor')
  found.push(
    opened
      ? await examineProcessor(environment, config)
      : about('processor').info('is not asked where there is no database'),
  )
  progress('the addresses')
  found.push(await examineWebhooks(config))
  if (usable) {
    found.push(await examineWork(config, usable), await examineSeals(config, usable))
    if (afterFailover) found.push(await examineFailover(config, usable))
  }
  await opened?.close()
  return findingsIn(found)
}

function readableConfig(environment: NodeJS.ProcessEnv): Config | null {
  try {
    return readSettings(environment)
  } catch (error) {
    if (error instanceof SettingError) return null
    throw error
  }
}

async function open({ DATABASE_DIRECT_URL: direct, DATABASE_URL: url }: Config): Promise<OpenDatabase> {
  await checkHosts('DATABASE_URL', url)
  return openDatabase(direct ?? url, { create: false, readOnly: true })
}
