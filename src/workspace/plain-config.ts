/**
 * The lines of a git config text that `git init`, `git config user.*`, `git remote add` and `git branch --track` write;
 * everything else is left out. Stricter than git's own reading, so that nothing passes which git would read otherwise.
 */
export function plainConfig(text: string): string {
  const kept: string[] = []
  let section: { header: string; name: string; isWritten: boolean } | null = null
  for (const line of text.split(/\r?\n/)) {
    const header = line.match(headerLine)
    if (header !== null) {
      section = { header: line, name: nameOf(header), isWritten: false }
      continue
    }
    // A header that is not understood ends the section before it.
    if (line.trimStart().startsWith('[')) section = null
    if (section === null || !isPlain(section.name, line)) continue
    if (!section.isWritten) kept.push(section.header)
    section.isWritten = true
    kept.push(line)
  }
  return kept.map(line => `${line}\n`).join('')
}

function nameOf([, name = '', subsection]: RegExpMatchArray): string {
  return subsection === undefined ? name.toLowerCase() : `${name.toLowerCase()}.*`
}

function isPlain(section: string, line: string): boolean {
  const [, key = '', value = ''] = line.match(valueLine) ?? []
  // `transport::address` names a program to run.
  return plainKeys.has(`${section}.${key.toLowerCase()}`) && !value.includes('::')
}

const headerLine = /^\[([A-Za-z]+)(?: "([^"\\\p{Cc}]*)")?\]$/u
// No quotes, escapes, comments or continued lines.
const valueLine = /^[\t ]+([A-Za-z]+) = ([^"\\#;\p{Cc}]*)$/u

const plainKeys: ReadonlySet<string> = new Set([
  'core.repositoryformatversion',
  'core.filemode',
  'core.bare',
  'core.logallrefupdates',
  'core.ignorecase',
  'core.precomposeunicode',
  'core.symlinks',
  'core.worktree',
  'extensions.objectformat',
  'extensions.refstorage',
  'init.defaultbranch',
  'user.name',
  'user.email',
  'remote.*.url',
  'remote.*.fetch',
  'branch.*.remote',
  'branch.*.merge',
])
