import { quoted, valueCases, type WordNode } from './word-tree.ts'

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
