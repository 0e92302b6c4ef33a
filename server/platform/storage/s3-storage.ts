import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import {
  DeleteObjectCommand,
  GetObjectCommand,
  GetObjectLockConfigurationCommand,
  NoSuchKey,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import type { Config } from '../config.ts'
import { checkedKey, type FileStorage, readText } from './storage.ts'

const CONNECT_TIMEOUT_MS = 5000
/** Until a response begins; the download of a large file may take longer. */
const RESPONSE_TIMEOUT_MS = 60_000
/** One part is in memory at a time. S3 takes 10,000 parts, so a file can have 80 GB. */
const PART_BYTES = 8 * 1024 * 1024

/**
 * Keeps files as objects of a bucket. `write` uploads in parts, so an object exists only once it is complete; the bucket's lifecycle rule
 * removes the unfinished uploads of a killed process, because few servers other than AWS can list them. For `create` the bucket must have
 * object lock with a default retention, which S3 then gives to each new object. Without the permission s3:ListBucket S3 answers 403
 * instead of 404 for what is not there.
 */
export function openBucket(config: Config, bucket: string, prefix: string): FileStorage {
  const client = openClient(config)
  const folder = prefix === '' ? '' : `${prefix}/`
  const place = (key: string) => ({ Bucket: bucket, Key: folder + checkedKey(key) })
  const storage: FileStorage = {
    async write(key, content) {
      const failure: { error?: unknown } = {}
      const body = Readable.from(withFailure(content, failure), { objectMode: false })
      const params = { ...place(key), Body: body, ContentType: 'application/octet-stream' }
      try {
        await new Upload({ client, params, queueSize: 1, partSize: PART_BYTES }).done()
      } catch (error) {
        // The error of aborting the upload must not hide the error of `content`.
        throw failure.error ?? error
      } finally {
        body.destroy()
      }
    },
    async create(key, content) {
      try {
        const command = new PutObjectCommand({
          ...place(key),
          Body: content,
          ContentType: 'application/json',
          // Object lock requires a checksum, and other servers than AWS all know this one.
          ContentMD5: createHash('md5').update(content).digest('base64'),
          IfNoneMatch: '*',
        })
        await client.send(command)
        return true
      } catch (error) {
        const taken = (error as S3ServiceException).$metadata?.httpStatusCode === 412
        if (!taken) throw error
        return (await readText(storage, key)) === content
      }
    },
    async read(key) {
      try {
        const { Body, ContentLength } = await client.send(new GetObjectCommand(place(key)))
        if (!(Body instanceof Readable) || ContentLength === undefined)
          throw new Error(`the storage returned no body for ${key}`)
        return { content: Body, bytes: ContentLength }
      } catch (error) {
        if (error instanceof NoSuchKey) return null
        throw error
      }
    },
    async remove(key) {
      await client.send(new DeleteObjectCommand(place(key)))
    },
    async isWriteOnce() {
      try {
        const command = new GetObjectLockConfigurationCommand({ Bucket: bucket })
        const { ObjectLockConfiguration: lock } = await client.send(command)
        return lock?.ObjectLockEnabled === 'Enabled' && lock.Rule?.DefaultRetention !== undefined
      } catch (error) {
        if (!(error instanceof S3ServiceException)) throw error
        // Without object lock S3 answers with this error. Others: no permission to ask, or a server that does not know the call.
        return error.name === 'ObjectLockConfigurationNotFoundError' ? false : null
      }
    },
    close: () => client.destroy(),
  }
  return storage
}

function openClient(config: Config): S3Client {
  const { S3_ACCESS_KEY_ID: accessKeyId = '', S3_SECRET_ACCESS_KEY: secretAccessKey = '' } = config
  return new S3Client({
    ...(config.S3_ENDPOINT !== undefined && { endpoint: config.S3_ENDPOINT }),
    region: config.S3_REGION,
    credentials: { accessKeyId, secretAccessKey },
    forcePathStyle: config.S3_FORCE_PATH_STYLE,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, requestTimeout: RESPONSE_TIMEOUT_MS },
    // Not all S3 servers support the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
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
