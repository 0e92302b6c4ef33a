import { Readable } from 'node:stream'
import { DeleteObjectCommand, GetObjectCommand, NoSuchKey } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import type { Config } from '../platform/config.ts'
import { openS3Client } from '../platform/network/s3-client.ts'
import { checkedKey, type ExportStorage } from './export-storage.ts'

const FOLDER = 'exports/'
/** One part is in memory at a time. S3 takes 10,000 parts, so a file can have 80 GB. */
const PART_BYTES = 8 * 1024 * 1024

/**
 * Keeps exports in a bucket, by multipart upload, so an object exists only once it is complete. The bucket's lifecycle rule removes the
 * unfinished uploads of a killed process: few servers other than AWS can list them.
 */
export function openS3Storage(config: Config): ExportStorage & { close(): void } {
  const client = openS3Client(config)
  const placeOf = (key: string) => ({ Bucket: config.S3_BUCKET, Key: FOLDER + checkedKey(key) })
  return {
    async write(key, content) {
      const failure: { error?: unknown } = {}
      const body = Readable.from(withFailure(content, failure), { objectMode: false })
      const params = { ...placeOf(key), Body: body, ContentType: 'application/octet-stream' }
      try {
        await new Upload({ client, params, queueSize: 1, partSize: PART_BYTES }).done()
      } catch (error) {
        // The error of aborting the upload must not hide the error of `content`.
        throw failure.error ?? error
      } finally {
        body.destroy()
      }
    },
    async read(key) {
      try {
        const { Body, ContentLength } = await client.send(new GetObjectCommand(placeOf(key)))
        if (!(Body instanceof Readable) || ContentLength === undefined) {
          throw new Error(`the storage returned no body for ${key}`)
        }
        return { content: Body, bytes: ContentLength }
      } catch (error) {
        if (error instanceof NoSuchKey) return null
        throw error
      }
    },
    async remove(key) {
      await client.send(new DeleteObjectCommand(placeOf(key)))
    },
    close: () => client.destroy(),
  }
}

/** Saves the error of `content` in `failure`. */
async function* withFailure(content: AsyncIterable<string>, failure: { error?: unknown }) {
  try {
    yield* content
  } catch (error) {
    failure.error = error
    throw error
  }
}
