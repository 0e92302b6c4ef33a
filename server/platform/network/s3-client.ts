import { S3Client } from '@aws-sdk/client-s3'
import type { Config } from '../config.ts'

const CONNECT_TIMEOUT_MS = 5000
/** Until a response begins; the download of a large file may take longer. */
const RESPONSE_TIMEOUT_MS = 60_000

/** The storage that the settings S3_… name. */
export function openS3Client(config: Config): S3Client {
  return new S3Client({
    ...(config.S3_ENDPOINT !== undefined && { endpoint: config.S3_ENDPOINT }),
    region: config.S3_REGION,
    credentials: {
      accessKeyId: config.S3_ACCESS_KEY_ID ?? '',
      secretAccessKey: config.S3_SECRET_ACCESS_KEY ?? '',
    },
    forcePathStyle: config.S3_FORCE_PATH_STYLE,
    requestHandler: { connectionTimeout: CONNECT_TIMEOUT_MS, requestTimeout: RESPONSE_TIMEOUT_MS },
    // Not all S3 servers support the newer checksums.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
}
