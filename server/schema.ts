import type { InferKyselyDB } from '@mikro-orm/sql'
import { Application } from './applications/application.entity.ts'
import { BillingCycle, BillingCycleShare, Credit } from './billing/billing.entity.ts'
import { Click, ClickCount, CountedVisitor, UncountedClicks } from './clicks/click.entity.ts'
import { ExportJob } from './exports/export-job.entity.ts'
import { AuditEntry, Flag } from './flags/flag.entity.ts'
import { InboundBody, InboundEvent, OperatorDelivery } from './inbox/inbound-event.entity.ts'
import { ScheduleRun } from './jobs/schedule-run.entity.ts'
import { LedgerEntry, LedgerHead, LedgerPosting } from './ledger/ledger.entity.ts'
import { LedgerSeal, LedgerSealHead } from './ledger/seals/seal.entity.ts'
import { AffiliateLink, LinkCoupon } from './links/affiliate-link.entity.ts'
import { Mail, MailOptOut } from './notifications/channels/mail/mail.entity.ts'
import {
  WebhookDelivery,
  WebhookEndpoint,
  WebhookSecret,
} from './notifications/channels/webhooks/webhook.entity.ts'
import { OutboxEvent } from './notifications/outbox-event.entity.ts'
import { Offer, OfferStatusChange } from './offers/offer.entity.ts'
import { Payout, PayoutLine } from './payouts/payout.entity.ts'
import { Watermark } from './platform/database/watermark.entity.ts'
import { RateLimitPoints } from './platform/network/rate-limit.entity.ts'
import { RunningProcess } from './processes/process.entity.ts'
import { ProcessorAttempt } from './processor/attempt.entity.ts'
import { Sale, SaleDecision } from './sales/sale.entity.ts'
import { Store, StoreDay, StoreHost, StoreSecret, UnclaimedDomain } from './stores/store.entity.ts'
import {
  AccountToken,
  BillingAccount,
  LoginAddress,
  PayoutDestination,
  RecoveryCode,
  SecondFactor,
  Session,
  User,
} from './users/user.entity.ts'
import { LinkDay, Mailbox } from './watches/watched.entity.ts'

const MARKET = {
  User,
  Session,
  LoginAddress,
  AccountToken,
  SecondFactor,
  RecoveryCode,
  PayoutDestination,
  BillingAccount,
  Mail,
  MailOptOut,
  Store,
  StoreSecret,
  StoreHost,
  StoreDay,
  UnclaimedDomain,
  Offer,
  OfferStatusChange,
  Application,
  AffiliateLink,
  LinkCoupon,
  Click,
  ClickCount,
  UncountedClicks,
  CountedVisitor,
}

const MONEY_AND_OPERATION = {
  BillingCycle,
  BillingCycleShare,
  Credit,
  Sale,
  SaleDecision,
  Payout,
  PayoutLine,
  LedgerEntry,
  LedgerPosting,
  LedgerHead,
  LedgerSeal,
  LedgerSealHead,
  InboundEvent,
  InboundBody,
  OperatorDelivery,
  ProcessorAttempt,
  OutboxEvent,
  WebhookEndpoint,
  WebhookSecret,
  WebhookDelivery,
  Flag,
  AuditEntry,
  LinkDay,
  Mailbox,
  ScheduleRun,
  ExportJob,
  RunningProcess,
  RateLimitPoints,
  Watermark,
}

/** Every table, in the order in which rows can be inserted. In two parts, because the compiler does not write declarations of any length. */
export const ENTITIES: typeof MARKET & typeof MONEY_AND_OPERATION = { ...MARKET, ...MONEY_AND_OPERATION }

// Names the tables for the platform, which imports no concept.
declare module './platform/database/schema.ts' {
  interface Schema extends InferKyselyDB<(typeof ENTITIES)[keyof typeof ENTITIES]> {}
}
