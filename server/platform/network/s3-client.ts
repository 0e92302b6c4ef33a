import { S3Client } from '@aws-sdk/client-s3'

export interface S3Account {
  /** `undefined` for AWS. */
  endpoint: string | undefined
  region: string
  accessKeyId: string
  secretAccessKey: string
  forcePathStyle: boolean
}

const CONNECT_TIMEOUT_MS = 5000
/** Until a response begins; the download of a large file may take longer. */
const RESPONSE_TIMEOUT_MS = 60_000

export function openS3Client(account: S3Account): S3Client {
  return new S3Client({
    ...(account.endpoint !== undefined && { endpoint: account.endpoint }),
    region: account.region,
    credentials: { accessKeyId: account.accessKeyId, secretAccessKey: account.secretAccessKey },
    forcePathStyle: account.forcePathStyle,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, requestTimeout: RESPONSE_TIMEOUT_MS },
    // Not all S3 servers support the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
}
