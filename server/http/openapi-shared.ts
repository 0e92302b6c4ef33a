/** What the OpenAPI document says of answers that are shared: they carry a tag, and whoever shows it may hear that it still holds. */

const text = (description: string, example: string) => ({
  description,
  required: true,
  schema: { type: 'string' },
  example,
})

const TAG = '"q2Jx0v5mB4y8sF1aZ7nKdw"'

/** Of an answer to a caller without a credential; one who shows a credential gets `no-store`, and no tag. */
export const SHARED_HEADERS = {
  ETag: { ...text('Names this answer. Missing where a credential was shown.', TAG), required: false },
  'Cache-Control': text(
    '`public, no-cache`: may be kept, to be asked after each time. With a credential `no-store`.',
    'public, no-cache',
  ),
}

export const IF_NONE_MATCH = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The `ETag` of the answer that is there already; counts without a credential only.',
  schema: { type: 'string' },
  example: TAG,
}

export const NOT_MODIFIED = {
  description: 'The answer of that `ETag` still holds; there is no body.',
  headers: {
    ETag: text('The tag that still holds.', TAG),
    'Cache-Control': text('As with the answer itself.', 'public, no-cache'),
  },
}
