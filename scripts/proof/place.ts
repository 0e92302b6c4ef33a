import { rm } from 'node:fs/promises'
import { givenPostgres, startPostgres } from '../testing/postgres.ts'
import { compileCache } from '../testing/run-tests.ts'
import { makeScratch } from '../testing/scratch.ts'

export interface ProofPlace {
  /** What the files of proofs are given, but for their sizes. */
  env: NodeJS.ProcessEnv
  close(): Promise<void>
}

/** A folder and, unless `sqliteOnly`, a PostgreSQL for all files that run over the code in `root`. */
export async function openPlace(
  root: string,
  { inMemory, sqliteOnly }: { inMemory: boolean; sqliteOnly: boolean },
): Promise<ProofPlace> {
  const given = process.env.TEST_POSTGRES_URL
  const folder = await makeScratch(inMemory)
  const postgres = sqliteOnly ? null : given ? givenPostgres(given) : startPostgres(folder)
  return {
    env: {
      ...process.env,
      DRAIN_SECONDS: '0',
      NODE_COMPILE_CACHE: compileCache(root),
      TEST_RUN_FOLDER: folder,
      TMPDIR: folder,
      ...(postgres ? { TEST_POSTGRES_URL: await postgres.url } : { TEST_SQLITE_ONLY: '1' }),
    },
    async close() {
      await postgres?.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
