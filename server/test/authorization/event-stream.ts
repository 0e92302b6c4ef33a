/** What a stream of tRPC's says first: an error, as it stands in other answers, or that it goes on. */
export type FirstWord = { status: number; text: string }

/**
 * Reads until the stream has said something beside that it is there, and leaves it. A refusal comes inside a stream of the
 * status 200: here it is answered as it would be without one.
 */
export async function firstWordOf(chunks: AsyncIterable<Uint8Array>): Promise<FirstWord> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true })
    const event = text
      .split('\n\n')
      .find((part) => /^data: /m.test(part) && !/^event: connected$/m.test(part))
    if (event === undefined) continue
    const data = /^data: (.*)$/m.exec(event)?.[1] ?? ''
    if (!/^event: serialized-error$/m.test(event)) return { status: 200, text: data }
    const error = JSON.parse(data) as { data?: { httpStatus?: number } }
    return { status: error.data?.httpStatus ?? 500, text: JSON.stringify({ error }) }
  }
  return { status: 200, text: '' }
}
