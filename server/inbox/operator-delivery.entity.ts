import { defineEntity } from '@mikro-orm/core'
import { moment, text } from '../platform/database/columns.ts'

/**
 * A delivery that the command line signed in the name of a store or the processor, recorded before it is sent. An
 * inbound event with the same scope, delivery id and body hash has the origin `operator`. Only ever added.
 */
export const OperatorDelivery = defineEntity({
  name: 'OperatorDelivery',
  tableName: 'operator_deliveries',
  properties: {
    scope: text().primary(),
    delivery_id: text().primary(),
    /** SHA-256 of the raw body, hex. */
    body_hash: text().primary(),
    created_at: moment(),
  },
})
