/** Domains of one provider that ignores dots in the name. */
const GMAIL = ['gmail.com', 'googlemail.com']

/**
 * The mailbox that an e-mail address (lower case) delivers to: without a plus label, and at Gmail without dots. Accounts with one mailbox
 * belong to one person.
 */
export function mailboxOf(email: string): string {
  const at = email.lastIndexOf('@')
  const domain = email.slice(at + 1)
  // A name that starts with a plus sign has no label.
  const name = email.slice(0, at).replace(/^([^+]+)\+.*$/s, '$1')
  return GMAIL.includes(domain) ? `${name.replaceAll('.', '')}@gmail.com` : `${name}@${domain}`
}
