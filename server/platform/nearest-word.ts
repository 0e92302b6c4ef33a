/** The word that is most like `text`, if one is so much like it that it may have been meant. */
export function nearestWord(text: string, words: Iterable<string>): string | null {
  let best: string | null = null
  let least = Math.max(1, Math.floor(text.length * 0.4)) + 1
  for (const word of words) {
    const distance = distanceBetween(text.toLowerCase(), word.toLowerCase())
    if (distance >= least) continue
    least = distance
    best = word
  }
  return best
}

/** `Did you mean X?`, or nothing. */
export function didYouMean(text: string, words: Iterable<string>): string {
  const word = nearestWord(text, words)
  return word === null ? '' : ` Did you mean ${word}?`
}

/** How many letters must be changed, added, taken away or swapped with their neighbour. */
function distanceBetween(one: string, other: string): number {
  let before: number[] = []
  let above = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (let row = 1; row <= one.length; row += 1) {
    const line = [row]
    for (let at = 1; at <= other.length; at += 1) {
      const same = one[row - 1] === other[at - 1]
      let cost = Math.min(
        (above[at] ?? 0) + 1,
        (line[at - 1] ?? 0) + 1,
        (above[at - 1] ?? 0) + (same ? 0 : 1),
      )
      const swapped = row > 1 && at > 1 && one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1]
      if (swapped) cost = Math.min(cost, (before[at - 2] ?? 0) + 1)
      line.push(cost)
    }
    before = above
    above = line
  }
  return above[other.length] ?? 0
}
