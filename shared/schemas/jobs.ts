import { z } from 'zod'
import { idParam, pageOf, wireTime, wireTimeInput } from './common.ts'
import { subId } from './links.ts'

export const EXPORT_RESOURCES = [
  'sales',
  'payouts',
  'clicks',
  'billing_cycles',
  'applications',
  'pending_orders',
] as const
export const exportResource = z.enum(EXPORT_RESOURCES).describe('Which of the own rows are written.')
export type ExportResource = z.infer<typeof exportResource>

export const exportFormat = z
  .enum(['csv', 'ndjson'])
  .describe('Of the file; `ndjson` has a JSON object on each line.')
export type ExportFormat = z.infer<typeof exportFormat>

export const jobState = z
  .enum(['queued', 'running', 'succeeded', 'failed'])
  .describe('The file is there once it has `succeeded`.')
export type JobState = z.infer<typeof jobState>

export const job = z
  .object({
    id: idParam,
    kind: z.literal('export').describe('The one kind of job.'),
    resource: exportResource,
    format: exportFormat,
    state: jobState,
    progress: z.number().min(0).max(1).describe('The part that is done; 1 once the file is there.'),
    rows: z.int().describe('Rows written so far, without the header.').meta({ example: 1250 }),
    error: z.string().nullable().describe('Why it failed, for people.').meta({ example: null }),
    created_at: wireTime,
    finished_at: wireTime.nullable().describe('When it succeeded or failed.'),
    expires_at: wireTime.nullable().describe('When the file goes.'),
    download_url: z.string().nullable().meta({
      description:
        'Where the file is; asks for the same bearer token. Null until it is there and once it is gone.',
      example: 'https://api.example.com/jobs/019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e/file',
    }),
  })
  .meta({ id: 'Job' })
export type Job = z.infer<typeof job>
export const jobPage = pageOf(job)

export const startExportInput = z
  .strictObject({
    resource: exportResource,
    format: exportFormat,
    excel: z
      .boolean()
      .default(false)
      .describe(
        'CSV only: begins with a byte order mark and writes texts that look like numbers or dates as `="820982911946154508"`, so that Excel shows Urdu and order ids as they are when the file is opened by a double click.',
      ),
    billing_cycle_id: idParam
      .optional()
      .describe(
        'Of sales: those of this billing cycle, to itemize its invoice. A merchant names own cycles.',
      ),
    from: wireTimeInput.optional().describe('Inclusive, on created_at; of pending orders on placed_at.'),
    to: wireTimeInput.optional().describe('Exclusive, on created_at; of pending orders on placed_at.'),
  })
  .refine(({ format, excel }) => format === 'csv' || !excel, {
    path: ['excel'],
    message: 'is for the format csv only',
  })
  .refine((request) => request.resource === 'sales' || request.billing_cycle_id === undefined, {
    path: ['billing_cycle_id'],
    message: 'is for the resource sales only',
  })
/** A click as exports show it; there is no list of clicks. */
export const exportedClick = z.object({
  id: idParam,
  affiliate_link_slug: z.string(),
  tracked: z.boolean(),
  kind: z.enum(['visit', 'bot', 'prefetch', 'head', 'embedded']),
  created_at: wireTime,
  sub_id: subId.optional().describe('For the creator and admins only.'),
})
export type ExportedClick = z.infer<typeof exportedClick>
