import { dirname, normalize, relative } from 'node:path'

/** The largest tarball of a release, in bytes. */
export const MOST_BYTES = 1_700_000

/** Every path of the package matches one of these: a new kind of file is added here by a person. */
const PARTS = [
  /^(?:README\.md|LICENSE|package\.json|settings\.js|man\/codemachine\.1)$/,
  /^dist\/(?:[\w-]+\.js(?:\.LEGAL\.txt)?|yoga\.wasm|THIRD-PARTY\.txt|index\.d\.ts)$/,
  /^dist\/web\/[\w.-]+$/,
  /^(?:prompts|config|demo|docker)\/[\w./-]+$/,
  /^docs\/[\w/-]+\.md$/,
  /^schemas\/[\w-]+\.schema\.json$/,
]

/** The paths of a package that belong to none of its parts. */
export function strangersIn(paths: readonly string[]): string[] {
  return paths.filter(path => !PARTS.some(part => part.test(path)))
}

const KINDS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security']

/** The changelog with its unreleased section as that of `version`, and the headings in there; or what is wrong with it. */
export function releasedChangelog(
  text: string,
  version: string,
  on: Date,
): { text: string; headings: string[] } | { problem: string } {
  const sections = [...text.matchAll(/^## (.*)$/gm)]
  const [first, next] = sections
  if (!first || !/\(unreleased\)|^Unreleased$/i.test(first[1] ?? ''))
    return { problem: 'CHANGELOG.md does not begin with an unreleased section' }
  const body = text.slice(first.index + first[0].length, next?.index)
  const headings = [...body.matchAll(/^### (.*)$/gm)].map(([, heading = '']) => heading)
  if (!headings.some(heading => KINDS.some(kind => heading.startsWith(kind))))
    return { problem: `CHANGELOG.md: the unreleased section has none of ${KINDS.join(', ')}` }
  const heading = `## ${version} (${on.toISOString().slice(0, 10)})`
  return { text: text.replace(first[0], () => heading), headings }
}

/**
 * A page of the package in which each link to a file outside of the package is absolute, by the repository of `manifest`; `lost`:
 * the links that stay broken, because there is no repository.
 */
export function withAbsoluteLinks(
  text: string,
  of: { path: string; shipped: readonly string[]; manifest: { repository?: { url?: string } }; version: string },
): { text: string; lost: string[] } {
  const repository = of.manifest.repository?.url?.replace(/^git\+|\.git$/g, '')
  const lost: string[] = []
  const links = /(\]\()([^)\s#]+)|((?:src|srcset)=")([^"#]+)/g
  const changed = text.replace(links, (whole, before = '', link = '', beforeSource = '', source = '') => {
    const target: string = link || source
    if (/^[a-z]+:/.test(target)) return whole
    const to = normalize(`${dirname(of.path)}/${decodeURI(target)}`)
    if (of.shipped.includes(to) || of.shipped.some(path => !relative(to, path).startsWith('..'))) return whole
    if (repository === undefined) {
      lost.push(target)
      return whole
    }
    return `${before || beforeSource}${repository}/${source ? 'raw' : 'blob'}/v${of.version}/${to}`
  })
  return { text: changed, lost }
}
