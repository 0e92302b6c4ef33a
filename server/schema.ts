import { EntitySchema } from '@mikro-orm/core'
import type { InferKyselyDB } from '@mikro-orm/sql'
import * as application from './applications/application.entity.ts'
import * as billing from './billing/billing.entity.ts'
import * as click from './clicks/click.entity.ts'
import * as exportJob from './exports/export-job.entity.ts'
import * as flag from './flags/flag.entity.ts'
import * as inboundEvent from './inbox/inbound-event.entity.ts'
import * as scheduleRun from './jobs/schedule-run.entity.ts'
import * as ledger from './ledger/ledger.entity.ts'
import * as seal from './ledger/seals/seal.entity.ts'
import * as affiliateLink from './links/affiliate-link.entity.ts'
import * as mail from './notifications/channels/mail/mail.entity.ts'
import * as webhook from './notifications/channels/webhooks/webhook.entity.ts'
import * as outboxEvent from './notifications/outbox-event.entity.ts'
import * as offer from './offers/offer.entity.ts'
import * as payout from './payouts/payout.entity.ts'
import * as pendingOrder from './pending-orders/pending-order.entity.ts'
import * as platform from './platform/database/platform.entity.ts'
import * as process from './processes/process.entity.ts'
import * as attempt from './processor/attempt.entity.ts'
import * as manualTransfer from './processor/manual/transfer.entity.ts'
import * as sale from './sales/sale.entity.ts'
import * as store from './stores/store.entity.ts'
import * as user from './users/user.entity.ts'
import * as watched from './watches/watched.entity.ts'

const FILES = {
  application,
  billing,
  click,
  exportJob,
  flag,
  inboundEvent,
  scheduleRun,
  ledger,
  seal,
  affiliateLink,
  mail,
  webhook,
  outboxEvent,
  offer,
  payout,
  pendingOrder,
  platform,
  process,
  attempt,
  manualTransfer,
  sale,
  store,
  user,
  watched,
}

type File = (typeof FILES)[keyof typeof FILES]
type EntityOf<One> = One extends unknown ? Extract<One[keyof One], { meta: object }> : never

/** Every table. */
export const ENTITIES: EntitySchema[] = Object.values(FILES)
  .flatMap((file) => Object.values<unknown>(file))
  .filter((exported) => exported instanceof EntitySchema)

// Names the tables for the platform, which imports no concept.
declare module './platform/database/schema.ts' {
  interface Schema extends InferKyselyDB<EntityOf<File>> {}
}
