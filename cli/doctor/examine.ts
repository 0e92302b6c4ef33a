import { type Config, readConfig, SettingError } from '../../server/platform/config.ts'
import { checkHosts, type OpenDatabase, openDatabase } from '../../server/platform/database/open-database.ts'
import { examineDatabase, examineReplica, type Reached } from './database.ts'
import { examineFailover } from './failover.ts'
import { databaseFailure, type Finding, info } from './finding.ts'
import { examineClock, examineDisk } from './machine.ts'
import { examineMail } from './mail.ts'
import { examineProcessor, examineWebhooks } from './outside.ts'
import { examineRuntime, examineSettings } from './runtime.ts'
import { examineSeals } from './seals.ts'
import { examineSecrets } from './secrets.ts'
import { examineWork } from './work.ts'

type Environment = Record<string, string | undefined>

/**
 * Looks at everything that the service needs, and writes nothing; with `afterFailover` also for what a failover may have lost. What cannot
 * be looked at is a finding, no error.
 */
export async function examine(
  environment: Environment,
  progress: (what: string) => void,
  { afterFailover = false }: { afterFailover?: boolean } = {},
): Promise<Finding[]> {
  const findings = [...examineRuntime(), ...examineSettings(environment)]
  const config = readableConfig(environment)
  if (!config) return findings
  progress('the database')
  const opened = await open(config)
  const reached = 'database' in opened ? await examineDatabase(config, opened.database) : opened.reached
  if (reached.usable) findings.push(...reached.findings, ...(await examineReplica(config)))
  else findings.push(...reached.findings)
  findings.push(...(await examineDisk(config)))
  progress('clock and secrets')
  const usable = reached.usable && 'database' in opened ? opened.database : null
  findings.push(...(await examineClock(usable)), ...(await examineSecrets(config, environment, usable)))
  findings.push(...(await examineMail(config, usable)))
  progress('the processor')
  findings.push(
    ...('database' in opened
      ? await examineProcessor(environment, config)
      : [info('processor', 'is not asked where there is no database')]),
  )
  progress('the addresses')
  findings.push(...(await examineWebhooks(config)))
  if (usable) {
    findings.push(...(await examineWork(config, usable)), ...(await examineSeals(config, usable)))
    if (afterFailover) findings.push(...(await examineFailover(config, usable)))
  }
  if ('database' in opened) await opened.database.close()
  return findings
}

function readableConfig(environment: Environment): Config | null {
  try {
    return readConfig(environment)
  } catch (error) {
    if (error instanceof SettingError) return null
    throw error
  }
}

async function open(config: Config): Promise<{ database: OpenDatabase } | { reached: Reached }> {
  try {
    await checkHosts('DATABASE_URL', config.DATABASE_URL)
    const { DATABASE_DIRECT_URL: direct, DATABASE_URL: url } = config
    return { database: await openDatabase(direct ?? url, { create: false, readOnly: true }) }
  } catch (error) {
    return { reached: { usable: false, findings: [databaseFailure(error)] } }
  }
}
