import { Readable } from 'node:stream'
import { DeleteObjectCommand, GetObjectCommand, NoSuchKey } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { openS3Client, type S3Account } from '../platform/network/s3-client.ts'
import { checkedKey, type ExportStorage } from './export-storage.ts'

export interface S3Access extends S3Account {
  bucket: string
}

const FOLDER = 'exports/'
/** One part is held in memory at a time. S3 takes 10,000 of them, which makes 80 GB. */
const PART_BYTES = 8 * 1024 * 1024

/**
 * Keeps exports in a bucket, by multipart upload: an object is there only once it is whole. The parts that a killed process
 * has left are for the bucket's own rule on unfinished uploads: few servers other than AWS can be asked for them.
 */
export function openS3Storage(access: S3Access): ExportStorage & { close(): void } {
  const { bucket } = access
  const client = openS3Client(access)
  const placeOf = (key: string) => ({ Bucket: bucket, Key: FOLDER + checkedKey(key) })
  return {
    async write(key, content) {
      const failure: { error?: unknown } = {}
      const body = Readable.from(noting(content, failure), { objectMode: false })
      const params = { ...placeOf(key), Body: body, ContentType: 'application/octet-stream' }
      try {
        await new Upload({ client, params, queueSize: 1, partSize: PART_BYTES }).done()
      } catch (error) {
        // When taking the upload back fails as well, that must not hide why.
        throw failure.error ?? error
      } finally {
        body.destroy()
      }
    },
    async read(key) {
      try {
        const { Body, ContentLength } = await client.send(new GetObjectCommand(placeOf(key)))
        if (!(Body instanceof Readable) || ContentLength === undefined) {
          throw new Error(`the storage answered without a body for ${key}`)
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

async function* noting(content: AsyncIterable<string>, failure: { error?: unknown }) {
  try {
    yield* content
  } catch (error) {
    failure.error = error
    throw error
  }
}
