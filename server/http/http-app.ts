import type { ClickRecorder } from '../clicks/clicks.service.ts'
import type { InboxRecorder } from '../inbox/intake.service.ts'
import type { Platform } from '../platform/platform.ts'
import type { SignatureScheme } from '../processor/signatures/scheme.ts'

/** What the web edge is given by the composition root. */
export interface HttpApp {
  platform: Platform
  clicks: ClickRecorder
  inbox: InboxRecorder
  /** How the processor signs its events, and with which secrets; any of them may match. */
  processorSignature: { scheme: SignatureScheme; secrets: readonly string[] }
  /** Names of the migrations that this code knows and the database has not seen. */
  pendingMigrations(): Promise<string[]>
}
