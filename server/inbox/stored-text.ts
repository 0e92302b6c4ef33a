/** A raw body, read as UTF-8, however it is stored. */
export function textOf({ body, encoding }: { body: string; encoding: 'utf8' | 'base64' }): string {
  return encoding === 'utf8' ? body : Buffer.from(body, encoding).toString('utf8')
}
