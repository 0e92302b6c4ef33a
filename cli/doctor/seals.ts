import { lastSeal } from '../../server/ledger/seals/seals.service.ts'
import { openSealStorage, sealName, sealText } from '../../server/ledger/seals/stored-seals.service.ts'
import type { Config } from '../../server/platform/config.ts'
import type { OpenDatabase } from '../../server/platform/database/open-database.ts'
import { type FileStorage, readText } from '../../server/platform/storage/storage.ts'
import { HOUR_MS } from '../../shared/durations.ts'
import { about, type Finding, type Found, wordsOf } from './finding.ts'

const { ok, info, warn } = about('seals')

/** The job runs every five minutes, and one failed run is no reason to look. */
const LATE_MS = HOUR_MS

/** Whether SEAL_STORAGE gets the seals, and whether its bucket keeps them. One or two requests; nothing where it is not set. */
export async function examineSeals(config: Config, database: OpenDatabase): Promise<Found> {
  if (config.SEAL_STORAGE === undefined) return null
  try {
    const storage = await openSealStorage(config)
    if (!storage) return null
    try {
      const delivery = await examineDelivery(database, storage)
      const isBucket = config.SEAL_STORAGE.startsWith('s3://')
      return isBucket ? [delivery, await examineLock(storage)] : [delivery]
    } finally {
      storage.close()
    }
  } catch (error) {
    return warn(
      `SEAL_STORAGE cannot be read: ${wordsOf(error)}`,
      'Check SEAL_STORAGE, the S3 settings and the permissions of the key.',
    )
  }
}

async function examineDelivery({ reader }: OpenDatabase, storage: FileStorage): Promise<Finding> {
  const seal = await lastSeal(reader, Date.now() - LATE_MS)
  if (!seal) return ok('no seal is due in SEAL_STORAGE yet')
  const stored = await readText(storage, sealName(seal.position))
  if (stored === sealText(seal)) return ok(`SEAL_STORAGE holds seal ${seal.position}`)
  const at = new Date(seal.sealedAt).toISOString()
  if (stored === null) {
    return warn(
      `seal ${seal.position} of ${at} is not in SEAL_STORAGE after more than an hour`,
      'Check that a process with the role scheduler runs with SEAL_STORAGE set; its log names what fails in the job seal-storage.',
    )
  }
  return warn(
    `SEAL_STORAGE holds another seal ${seal.position} than this database`,
    'Run "affiliate ledger verify --against storage".',
  )
}

async function examineLock(storage: FileStorage): Promise<Finding> {
  const isLocked = await storage.isWriteOnce()
  if (isLocked) return ok('the bucket of SEAL_STORAGE has object lock with a default retention')
  if (isLocked === null) {
    return info('the bucket of SEAL_STORAGE does not say whether it has object lock')
  }
  return warn(
    'the bucket of SEAL_STORAGE has no object lock with a default retention: its seals can be replaced',
    'Enable object lock and a default retention on the bucket, in compliance mode.',
  )
}
