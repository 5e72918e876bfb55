import packageJson from '../../package.json' with { type: 'json' }

/** The version of codemachine. */
export const version: string = packageJson.version
