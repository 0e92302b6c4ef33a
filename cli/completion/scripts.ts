import type { WordNode, WordOption } from './word-tree.ts'

/** For bash 3.2 and later, which knows no associative arrays. */
export function bashCompletion(nodes: readonly WordNode[]): string {
  return `# bash completion of affiliate. In ~/.bashrc:  source <(affiliate completion bash)
_affiliate_words() {
  case "$1" in
${nodes.map((node) => `    ${quoted(node.path)}) echo ${quoted(wordsOf(node).join(' '))} ;;`).join('\n')}
  esac
}

_affiliate_values() {
  case "$1" in
${valueCases(nodes, (words) => `echo ${quoted(words.join(' '))}`)}
    *) return 1 ;;
  esac
}

_affiliate() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" path="" word at skip=""
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    if [[ -n "$skip" ]]; then skip=""; continue; fi
    if [[ "$word" == -* ]]; then
      if _affiliate_values "$path $word" > /dev/null; then skip=1; fi
      continue
    fi
    if [[ " $(_affiliate_words "$path") " == *" $word "* ]]; then path="\${path:+$path }$word"; fi
  done
  COMPREPLY=()
  local values
  if [[ "$previous" == -* ]] && values="$(_affiliate_values "$path $previous")"; then
    if [[ "$values" == "<file>" ]]; then COMPREPLY=($(compgen -f -- "$current"))
    else COMPREPLY=($(compgen -W "$values" -- "$current")); fi
    return
  fi
  local words="$(_affiliate_words "$path")"
  if [[ "$current" != -* && " $words" == *" "[a-z]* ]]; then
    words="$(for word in $words; do [[ "$word" == -* ]] || echo "$word"; done)"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -F _affiliate affiliate
`
}

function wordsOf({ commands, options }: WordNode): string[] {
  return [...commands.map(({ name }) => name), ...options.map(({ flag }) => flag)]
}

export function zshCompletion(nodes: readonly WordNode[]): string {
  return `#compdef affiliate
# zsh completion of affiliate. In ~/.zshrc, after compinit:  source <(affiliate completion zsh)
_affiliate_commands() {
  case "$1" in
${nodes
  .filter(({ commands }) => commands.length > 0)
  .map(({ path, commands }) => `    ${quoted(path)}) reply=(${commands.map(described).join(' ')}) ;;`)
  .join('\n')}
    *) reply=() ;;
  esac
}

_affiliate_options() {
  case "$1" in
${nodes.map(({ path, options }) => `    ${quoted(path)}) reply=(${options.map(({ flag, description }) => described({ name: flag, description })).join(' ')}) ;;`).join('\n')}
    *) reply=() ;;
  esac
}

_affiliate_values() {
  case "$1" in
${valueCases(nodes, (words) => `reply=(${words.map(quoted).join(' ')})`)}
    *) return 1 ;;
  esac
}

_affiliate() {
  local place="" word skip="" entry
  local -a reply names
  integer at
  for ((at = 2; at < CURRENT; at++)); do
    word="\${words[at]}"
    if [[ -n "$skip" ]]; then skip=""; continue; fi
    if [[ "$word" == -* ]]; then
      if _affiliate_values "$place $word"; then skip=1; fi
      continue
    fi
    _affiliate_commands "$place"
    names=("\${(@)reply%%:*}")
    if (( \${names[(Ie)$word]} )); then place="\${place:+$place }$word"; fi
  done
  if [[ "\${words[CURRENT-1]}" == -* ]] && _affiliate_values "$place \${words[CURRENT-1]}"; then
    if [[ "\${reply[1]}" == "<file>" ]]; then _files; else compadd -a reply; fi
    return
  fi
  _affiliate_commands "$place"
  if (( \${#reply} )) && [[ "\${words[CURRENT]}" != -* ]]; then _describe command reply; return; fi
  _affiliate_options "$place"
  _describe option reply
}

compdef _affiliate affiliate
`
}

function described({ name, description }: { name: string; description: string }): string {
  return quoted(`${name}:${description.replaceAll(':', '\\:')}`)
}

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

/** Text between single quotes of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** A case of a shell for each option that a value follows: what `list` makes of the values that there are. */
function valueCases(nodes: readonly WordNode[], list: (words: readonly string[]) => string): string {
  const cases = nodes.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ flag, values, isFile }) => {
        return `    ${quoted(`${path} ${flag}`)}) ${list(isFile ? ['<file>'] : values)} ;;`
      }),
  )
  return cases.join('\n')
}
