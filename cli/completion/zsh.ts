import { quoted, valueCases, type WordNode } from './word-tree.ts'

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
