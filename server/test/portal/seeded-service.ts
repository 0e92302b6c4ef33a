import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MovingClock, type Seeded, seed, storyStart } from '../../../cli/seed/seed.ts'
import { openApp } from '../../app.ts'
import { migrate } from '../../migrator.ts'
import { checkAppKey } from '../../platform/crypto/key-mark.ts'
import { type Service, startService } from '../../service.ts'

export interface SeededService {
  service: Service
  url: string
  seeded: Seeded
  /** Starts it again on the same port and data after `service.stop()`. */
  restart(): Promise<void>
  close(): Promise<void>
}

/** The whole service over seeded data, as `npm start -- --seed` makes them, on SQLite. */
export async function openSeededService(settings: Record<string, string> = {}): Promise<SeededService> {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-portal-'))
  const environment = {
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: `sqlite:${join(folder, 'seeded.db')}`,
    DATA_DIR: folder,
    SMTP_URL: 'off',
    LOG_LEVEL: 'silent',
    RATE_LIMIT_AUTH: '0',
    RATE_LIMIT_PUBLIC: '0',
    RATE_LIMIT_USER: '0',
    ...settings,
  }
  const now = Date.now()
  const clock = new MovingClock(storyStart(now))
  const app = await openApp({ create: true, environment, clock })
  await migrate(app.database)
  await checkAppKey(app.database, app.platform.vault)
  const seeded = await seed(app, clock, now)
  await app.close()
  const start = async (port: string) => {
    const service = await startService({ environment: { ...environment, PORT: port } })
    if (!service.url) throw new Error('the service does not listen')
    return { service, url: service.url }
  }
  const first = await start('0')
  const bed: SeededService = {
    ...first,
    seeded,
    async restart() {
      Object.assign(bed, await start(new URL(first.url).port))
    },
    async close() {
      await bed.service.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return bed
}
