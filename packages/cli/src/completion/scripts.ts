export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/**
 * The scripts know nothing about `svc`: they pass the words to `svc __complete`. It prints one candidate per line,
 * followed by a tab and a description, and `:files` if file names are possible, too.
 */
export const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# bash completion for svc; load it with: source <(svc completion bash)
_svc() {
  local line=\${COMP_LINE:0:COMP_POINT} word cut='' candidate files=0
  local -a words=()
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  word=\${words[\${#words[@]} - 1]}
  # readline cuts words at ':' and '=', and replaces only what is behind the last one
  [[ $word == *[:=]* && $COMP_WORDBREAKS == *:* ]] && cut=\${word%"\${word##*[:=]}"}
  COMPREPLY=()
  while IFS=$'\\t' read -r candidate _; do
    if [[ $candidate == :files ]]; then files=1; else COMPREPLY+=("\${candidate#"$cut"}"); fi
  done < <("$1" __complete -- "\${words[@]:1}" 2>/dev/null)
  ((files)) && compopt -o default 2>/dev/null
}
complete -F _svc svc
`,
  zsh: `#compdef svc
# zsh completion for svc; put it into a folder of $fpath as _svc, or load it with: source <(svc completion zsh)
_svc() {
  local -a found
  local line files=0
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      files=1
    elif [[ $line == *$'\\t'?* ]]; then
      found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
    else
      found+=("\${\${line%%$'\\t'*}//:/\\\\:}")
    fi
  done < <("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  ((\${#found})) && _describe svc found
  ((files)) && _files
}
if [[ \${funcstack[1]} == _svc ]]; then _svc "$@"; else compdef _svc svc; fi
`,
  fish: `# fish completion for svc; load it with: svc completion fish | source
function __svc_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l found ($program __complete -- $words "$(commandline -ct)" 2>/dev/null)
    string match -v -- ':files' $found
    contains -- ':files' $found; and __fish_complete_path (commandline -ct)
end
complete -c svc -f -a '(__svc_complete)'
`
}
