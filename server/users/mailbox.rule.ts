/** Domains of one provider that ignores dots in the name. */
const GMAIL = ['gmail.com', 'googlemail.com']

/**
 * The mailbox that an e-mail address (lower case) delivers to: without a plus label, and at Gmail without dots. Accounts with one mailbox
 * belong to one person.
 */
export function mailboxOf(email: string): string {
  const at = email.lastIndexOf('@')
  const domain = email.slice(at + 1)
  const name = withoutLabel(email.slice(0, at))
  return GMAIL.includes(domain) ? `${name.replaceAll('.', '')}@gmail.com` : `${name}@${domain}`
}

/** A name that starts with a plus sign has no label. */
function withoutLabel(name: string): string {
  const plus = name.indexOf('+')
  return plus > 0 ? name.slice(0, plus) : name
}
