import { CycleFull } from '../billing/billing.service.ts'
import { type ClaimedEvent, type EventOutcome, settle, settleAll } from '../inbox/inbox.service.ts'
import { BODY_GONE, CONFLICTING, unreadable } from '../inbox/set-aside.service.ts'
import { recheckProductHosts } from '../offers/product-host.service.ts'
