import { defineEntity } from '@mikro-orm/core'
import { text } from './columns.ts'

/** Small facts about the service itself, by name: the progress of a job, the key that sealed the secrets. */
export const Watermark = defineEntity({
  name: 'Watermark',
  tableName: 'watermarks',
  properties: { name: text().primary(), value: text() },
})
