import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSettings, type SettingsPlaces } from '../../../src/project/settings/load.ts'

/** The default export of `settings.js`. */
export const { default: defaults } = await import(new URL('../../../settings.js', import.meta.url).href)

/** A work directory and a home directory with nothing in them. */
export async function openSettings() {
  const root = await mkdtemp(join(tmpdir(), 'settings-'))
  const places: SettingsPlaces = {
    directory: join(root, 'work'),
    env: {},
    configHome: join(root, 'config'),
    flags: {},
    defaults,
  }
  const ofPerson = join(places.configHome, 'codemachine', 'config.toml')
  const ofProject = join(places.directory, 'codemachine.toml')
  await mkdir(places.directory)
  await mkdir(join(places.configHome, 'codemachine'), { recursive: true })
  const load = (more: Partial<SettingsPlaces> = {}) => loadSettings({ ...places, ...more })
  return {
    root,
    configHome: places.configHome,
    directory: places.directory,
    ofPerson,
    ofProject,
    person: (text: string) => writeFile(ofPerson, text),
    project: (text: string | Buffer) => writeFile(ofProject, text),
    load,
    /** The error that is thrown; `no error` if there is none. */
    sentence: (more: Partial<SettingsPlaces> = {}) =>
      load(more).then(
        () => 'no error',
        (error: Error) => `${error.name}: ${error.message}`,
      ),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  }
}
