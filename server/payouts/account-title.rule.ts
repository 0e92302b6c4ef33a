/** Whether two titles of an account name the same holder: case, accents, spaces and punctuation do not count. */
export function isSameTitle(one: string, other: string): boolean {
  const plain = plainTitle(one)
  return plain !== '' && plain === plainTitle(other)
}

function plainTitle(title: string): string {
  return title
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '')
}
