import type { SandboxAccess } from '../platform/crypto/app-keys.ts'
import type { Platform } from '../platform/platform.ts'
import { createHttpProcessor } from './http-processor.ts'
import { createManualProcessor } from './manual/manual-processor.ts'
import type { Processor } from './processor.ts'
import { createSafepayProcessor, safepayOptions } from './safepay/safepay-processor.ts'

/**
 * The processor that PROCESSOR names. `sandbox` is the sandbox's key and usual address, for PROCESSOR=sandbox; `sandboxUrl` its address where
 * this process runs it.
 */
export function createProcessor(
  platform: Platform,
  sandbox: SandboxAccess | null,
  sandboxUrl?: () => string | null,
): Processor & { close(): Promise<void> } {
  const { config } = platform
  if (config.PROCESSOR === 'manual') return createManualProcessor(platform)
  if (config.PROCESSOR === 'safepay-raast') return createSafepayProcessor(safepayOptions(config))
  const apiKey = config.PROCESSOR_API_KEY ?? sandbox?.api_key ?? ''
  const url = config.PROCESSOR_URL ?? (() => sandboxUrl?.() ?? sandbox?.url ?? null)
  return createHttpProcessor({ url, apiKey, timeoutMs: config.PROCESSOR_TIMEOUT_MS })
}
