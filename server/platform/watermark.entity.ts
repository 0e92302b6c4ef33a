import { defineEntity } from '@mikro-orm/core'
import { text } from './columns.ts'

/** Small marks that the service keeps about itself: how far a job has come, which key sealed the secrets. */
export const Watermark = defineEntity({
  name: 'Watermark',
  tableName: 'watermarks',
  properties: { name: text().primary(), value: text() },
})
