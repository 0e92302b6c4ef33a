import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** As much of the package as is used here; it brings no types. */
interface S3Server {
  run(): Promise<AddressInfo>
  close(): Promise<void>
}
const S3rver: new (options: Record<string, unknown>) => S3Server = createRequire(import.meta.url)(
  '@20minutes/s3rver',
)

/** A server of S3 with one bucket, and the settings that lead to it. */
export async function openS3Server(bucket: string) {
  const directory = mkdtempSync(join(tmpdir(), 'affiliate-s3-'))
  const options = { address: '127.0.0.1', port: 0, silent: true, directory }
  const server = new S3rver({ ...options, configureBuckets: [{ name: bucket }] })
  const { port } = await server.run()
  return {
    settings: {
      S3_ENDPOINT: `http://127.0.0.1:${port}`,
      S3_ACCESS_KEY_ID: 'S3RVER',
      S3_SECRET_ACCESS_KEY: 'S3RVER',
      S3_FORCE_PATH_STYLE: 'true',
    },
    async close() {
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
