import { statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { type Config, dataFolder, sqliteFileOf } from '../../server/platform/config.ts'
import { type Finding, fail, ok, warn, wordsOf } from './finding.ts'

const LITTLE = 1_000_000_000
const TOO_LITTLE = 100_000_000

export async function examineDisk(config: Config): Promise<Finding[]> {
  const file = sqliteFileOf(config.DATABASE_URL)
  const folders = new Set([...(file === null ? [] : [resolve(dirname(file))]), resolve(dataFolder(config))])
  return Promise.all([...folders].map(examineFolder))
}

async function examineFolder(folder: string): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(folder)
    return judgeSpace(folder, bavail * bsize)
  } catch (error) {
    return warn('disk', `${folder}: ${wordsOf(error)}`, 'It is made when the service starts first.')
  }
}

export function judgeSpace(folder: string, free: number): Finding {
  const detail = `${(free / 1e9).toFixed(1)} GB free for ${folder}`
  if (free < TOO_LITTLE)
    return fail('disk', detail, 'Free space now: a full disk refuses every webhook and click.')
  if (free < LITTLE) return warn('disk', detail, 'Free some space, or move the data to a larger disk.')
  return ok('disk', detail)
}
