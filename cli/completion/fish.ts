import type { WordNode, WordOption } from './word-tree.ts'

export function fishCompletion(nodes: readonly WordNode[]): string {
  const groups = nodes.filter(({ commands }) => commands.length > 0).map(({ path }) => path)
  const deepest = Math.max(...nodes.map(({ path }) => path.split(' ').length))
  return `# fish completion of affiliate. In ~/.config/fish/completions/affiliate.fish:  affiliate completion fish | source
function __affiliate_at
    set -l place
    for word in (commandline -opc)[2..-1]
        string match -q -- '-*' $word; and continue
        contains -- "$place" ${groups.map(fishQuoted).join(' ')}; or break
        set place (string trim -- "$place $word")
        test (count (string split ' ' -- $place)) -ge ${deepest}; and break
    end
    test "$place" = "$argv[1]"
end

complete -c affiliate -f
${nodes.flatMap(linesOf).join('\n')}
`
}

function linesOf({ path, commands, options }: WordNode): string[] {
  const here = `complete -c affiliate -n ${fishQuoted(`__affiliate_at ${fishQuoted(path)}`)}`
  return [
    ...commands.map(({ name, description }) => `${here} -a ${name} -d ${fishQuoted(description)}`),
    ...options.map(
      (option) => `${here} ${flagOf(option)}${valueText(option)} -d ${fishQuoted(option.description)}`,
    ),
  ]
}

function flagOf({ flag }: WordOption): string {
  return flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`
}

function valueText({ takesValue, values, isFile }: WordOption): string {
  if (!takesValue) return ''
  if (isFile) return ' -r -F'
  return values.length === 0 ? ' -x' : ` -x -a ${fishQuoted(values.join(' '))}`
}

function fishQuoted(text: string): string {
  return `'${text.replace(/[\\']/g, '\\$&')}'`
}
