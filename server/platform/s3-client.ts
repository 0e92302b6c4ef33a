import { S3Client } from '@aws-sdk/client-s3'

export interface S3Account {
  /** Unset for AWS itself. */
  endpoint: string | undefined
  region: string
  accessKeyId: string
  secretAccessKey: string
  forcePathStyle: boolean
}

const CONNECT_TIMEOUT_MS = 5000
/** For an answer to begin; a large file may take as long as it likes. */
const ANSWER_TIMEOUT_MS = 60_000

export function openS3Client(account: S3Account): S3Client {
  return new S3Client({
    ...(account.endpoint !== undefined && { endpoint: account.endpoint }),
    region: account.region,
    credentials: { accessKeyId: account.accessKeyId, secretAccessKey: account.secretAccessKey },
    forcePathStyle: account.forcePathStyle,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, requestTimeout: ANSWER_TIMEOUT_MS },
    // Other servers than AWS do not all know the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
}
