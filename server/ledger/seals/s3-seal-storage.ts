import { createHash } from 'node:crypto'
import {
  GetObjectCommand,
  GetObjectLockConfigurationCommand,
  NoSuchKey,
  PutObjectCommand,
  S3ServiceException,
} from '@aws-sdk/client-s3'
import type { Config } from '../../platform/config.ts'
import { openS3Client } from '../../platform/network/s3-client.ts'
import { SealConflict, type SealStorage } from './seal-storage.ts'

/**
 * Keeps seals as objects of a bucket. The bucket must protect them from being replaced or deleted: it must have object lock
 * with a default retention, which S3 then gives to each new object. Without the permission s3:ListBucket S3 answers 403 instead of
 * 404 for what is not there.
 */
export function openS3SealStorage(config: Config, bucket: string, prefix: string): SealStorage {
  const client = openS3Client(config)
  const folder = prefix === '' ? '' : `${prefix}/`
  const place = (name: string) => ({ Bucket: bucket, Key: folder + name })
  const read = async (name: string) => {
    try {
      const { Body } = await client.send(new GetObjectCommand(place(name)))
      return (await Body?.transformToString('utf8')) ?? null
    } catch (error) {
      if (error instanceof NoSuchKey) return null
      throw error
    }
  }
  return {
    read,
    async create(name, text) {
      try {
        await client.send(
          new PutObjectCommand({
            ...place(name),
            Body: text,
            ContentType: 'application/json',
            // Object lock requires a checksum, and other servers than AWS all know this one.
            ContentMD5: createHash('md5').update(text).digest('base64'),
            IfNoneMatch: '*',
          }),
        )
      } catch (error) {
        const taken = (error as S3ServiceException).$metadata?.httpStatusCode === 412
        if (!taken) throw error
        if ((await read(name)) !== text) throw new SealConflict(name)
      }
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
}
