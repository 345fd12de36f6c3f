from hypac_verify.command import run

run()
